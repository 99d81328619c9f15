extends RefCounted
## Which family runs an operator.

const UNARY: String = """
	Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid
	HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh
	Softplus Softsign Sqrt Tan Tanh ThresholdedRelu"""
const BINARY: String = """
	Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub
	Sum Xor"""
const SHAPES: String = "Flatten Reshape Shape Size Squeeze Unsqueeze"
const REDUCING: String = """
	ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
	ReduceProd ReduceSum ReduceSumSquare"""
const NORMALISING: String = """
	BatchNormalization Hardmax InstanceNormalization LayerNormalization LogSoftmax Softmax"""
const POOLING: String = "AveragePool GlobalAveragePool GlobalMaxPool MaxPool"
const QUANTIZING: String = "DequantizeLinear DynamicQuantizeLinear MatMulInteger QuantizeLinear"
const ELEMENTS: String = """
	CumSum GatherElements GatherND ScatterElements ScatterND TopK Trilu"""

static var _family_of: Dictionary[String, GDScript] = _index()


## A step for this node; null if its operator cannot be run.
static func make(node: RLRuntime.OnnxNode) -> RLRuntime.OnnxStep:
	var name: String = node.op
	if node.domain not in ["", "ai.onnx"]:
		name = "%s.%s" % [node.domain, node.op]
	return _family_of[name].new() if _family_of.has(name) else null


static func _index() -> Dictionary[String, GDScript]:
	var found: Dictionary[String, GDScript] = {}
	_add(found, RLRuntime.OnnxUnary, UNARY)
	_add(found, RLRuntime.OnnxBinary, BINARY)
	_add(found, RLRuntime.OnnxClip, "Clip")
	_add(found, RLRuntime.OnnxIdentity, "Identity Dropout")
	_add(found, RLRuntime.OnnxProduct, "Gemm MatMul")
	_add(found, RLRuntime.OnnxConstant, "Constant ConstantOfShape OneHot Range")
	_add(found, RLRuntime.OnnxCast, "Cast CastLike")
	_add(found, RLRuntime.OnnxReshape, SHAPES)
	_add(found, RLRuntime.OnnxRearrange, "Expand Gather Pad Slice Tile Transpose")
	_add(found, RLRuntime.OnnxJoin, "Concat Split Where")
	_add(found, RLRuntime.OnnxElements, ELEMENTS)
	_add(found, RLRuntime.OnnxReduce, REDUCING)
	_add(found, RLRuntime.OnnxNormalise, NORMALISING)
	_add(found, RLRuntime.OnnxConv, "Conv ConvInteger")
	_add(found, RLRuntime.OnnxPool, POOLING)
	_add(found, RLRuntime.OnnxRecurrent, "GRU LSTM RNN")
	_add(found, RLRuntime.OnnxQuantize, QUANTIZING)
	_add(found, RLRuntime.OnnxQuantizedLstm, "com.microsoft.DynamicQuantizeLSTM")
	return found


static func _add(found: Dictionary[String, GDScript], family: GDScript, names: String) -> void:
	for name: String in names.replace("\n", " ").replace("\t", " ").split(" ", false):
		found[name] = family
