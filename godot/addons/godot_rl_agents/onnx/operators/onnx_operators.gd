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
static func make(node: RLAddon.OnnxNode) -> RLAddon.OnnxStep:
	var name: String = node.op
	if node.domain not in ["", "ai.onnx"]:
		name = "%s.%s" % [node.domain, node.op]
	return _family_of[name].new() if _family_of.has(name) else null


static func _index() -> Dictionary[String, GDScript]:
	var found: Dictionary[String, GDScript] = {}
	_add(found, RLAddon.OnnxUnary, UNARY)
	_add(found, RLAddon.OnnxBinary, BINARY)
	_add(found, RLAddon.OnnxClip, "Clip")
	_add(found, RLAddon.OnnxIdentity, "Identity Dropout")
	_add(found, RLAddon.OnnxProduct, "Gemm MatMul")
	_add(found, RLAddon.OnnxConstant, "Constant ConstantOfShape OneHot Range")
	_add(found, RLAddon.OnnxCast, "Cast CastLike")
	_add(found, RLAddon.OnnxReshape, SHAPES)
	_add(found, RLAddon.OnnxRearrange, "Expand Gather Pad Slice Tile Transpose")
	_add(found, RLAddon.OnnxJoin, "Concat Split Where")
	_add(found, RLAddon.OnnxElements, ELEMENTS)
	_add(found, RLAddon.OnnxReduce, REDUCING)
	_add(found, RLAddon.OnnxNormalise, NORMALISING)
	_add(found, RLAddon.OnnxConv, "Conv ConvInteger")
	_add(found, RLAddon.OnnxPool, POOLING)
	_add(found, RLAddon.OnnxRecurrent, "GRU LSTM RNN")
	_add(found, RLAddon.OnnxQuantize, QUANTIZING)
	_add(found, RLAddon.OnnxQuantizedLstm, "com.microsoft.DynamicQuantizeLSTM")
	return found


static func _add(found: Dictionary[String, GDScript], family: GDScript, names: String) -> void:
	for name: String in names.replace("\n", " ").replace("\t", " ").split(" ", false):
		found[name] = family
