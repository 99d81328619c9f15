extends RLRuntime.OnnxStep
## Operators that change each number by itself.

const PARAMETERS: Dictionary[String, Dictionary] = {
	"LeakyRelu": {"alpha": 0.01},
	"Elu": {"alpha": 1.0},
	"Celu": {"alpha": 1.0},
	"ThresholdedRelu": {"alpha": 1.0},
	"HardSigmoid": {"alpha": 0.2, "beta": 0.5},
	"Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
}

var _alpha: float = 0.0
var _beta: float = 0.0
var _is_tanh_gelu: bool = false
var _finds_positive: bool = true
var _finds_negative: bool = true


func prepare() -> void:
	var usual: Dictionary = PARAMETERS.get(node.op, {})
	if usual.has("alpha"):
		_alpha = node.real("alpha", usual["alpha"])
	if usual.has("beta"):
		_beta = node.real("beta", usual["beta"])
	if usual.has("gamma"):
		_beta = node.real("gamma", usual["gamma"])
	if node.op == "Gelu":
		_is_tanh_gelu = node.text("approximate", "none") == "tanh"
	elif node.op == "IsInf":
		_finds_positive = node.whole("detect_positive", 1) != 0
		_finds_negative = node.whole("detect_negative", 1) != 0


func compute(given: Array[RLRuntime.OnnxTensor]) -> Array[RLRuntime.OnnxTensor]:
	if not has_inputs(given, 1, 1) or not may_make(given[0].dims):
		return []
	var tensor: RLRuntime.OnnxTensor = given[0]
	if not tensor.is_float():
		return _of_ints(tensor)
	match node.op:
		"Not":
			return fail("it cannot work on %s" % tensor.describe())
		"IsNaN", "IsInf":
			return _found(tensor)
	var values: PackedFloat32Array = _of_floats(tensor.floats)
	return [RLRuntime.OnnxTensor.of_floats(values, tensor.dims, tensor.type)]


## The commonest have loops of their own, which are quicker.
func _of_floats(values: PackedFloat32Array) -> PackedFloat32Array:
	var size: int = values.size()
	var made: PackedFloat32Array = []
	made.resize(size)
	match node.op:
		"Relu":
			for index: int in size:
				var value: float = values[index]
				made[index] = 0.0 if value < 0.0 else value
		"Tanh":
			for index: int in size:
				made[index] = tanh(values[index])
		"Sigmoid":
			for index: int in size:
				made[index] = 1.0 / (1.0 + exp(-values[index]))
		"Exp":
			for index: int in size:
				made[index] = exp(values[index])
		_:
			for index: int in size:
				made[index] = _of_float(values[index])
	return made


func _of_float(x: float) -> float:
	match node.op:
		"Neg":
			x = -x
		"Abs":
			x = absf(x)
		"Sqrt":
			x = sqrt(x)
		"Log":
			x = log(x)
		"Reciprocal":
			x = 1.0 / x
		"Sign":
			x = signf(x)
		"Floor":
			x = floorf(x)
		"Ceil":
			x = ceilf(x)
		"Round":
			x = round_even(x)
		"Erf":
			x = erf(x)
		_:
			x = _rectified(x) if PARAMETERS.has(node.op) else _curved(x)
	return x


func _rectified(x: float) -> float:
	match node.op:
		"LeakyRelu":
			x = x if x >= 0.0 else _alpha * x
		"Elu":
			x = x if x >= 0.0 else _alpha * (exp(x) - 1.0)
		"Celu":
			x = x if x >= 0.0 else _alpha * (exp(x / _alpha) - 1.0)
		"Selu":
			x = _beta * (x if x > 0.0 else _alpha * (exp(x) - 1.0))
		"ThresholdedRelu":
			x = x if x > _alpha else 0.0
		"HardSigmoid":
			x = clampf(_alpha * x + _beta, 0.0, 1.0)
	return x


func _curved(x: float) -> float:
	match node.op:
		"Sin":
			x = sin(x)
		"Cos":
			x = cos(x)
		"Tan":
			x = tan(x)
		"Asin":
			x = asin(x) if absf(x) <= 1.0 else NAN
		"Acos":
			x = acos(x) if absf(x) <= 1.0 else NAN
		"Atan":
			x = atan(x)
		"Sinh":
			x = sinh(x)
		"Cosh":
			x = cosh(x)
		"Asinh":
			x = signf(x) * log(absf(x) + sqrt(x * x + 1.0))
		"Acosh":
			x = log(x + sqrt(x * x - 1.0))
		"Atanh":
			x = 0.5 * log((1.0 + x) / (1.0 - x))
		_:
			x = _smooth(x)
	return x


func _smooth(x: float) -> float:
	match node.op:
		"Softplus":
			x = softplus(x)
		"Softsign":
			x = x / (1.0 + absf(x))
		"HardSwish":
			x = x * clampf(x / 6.0 + 0.5, 0.0, 1.0)
		"Mish":
			x = x * tanh(softplus(x))
		"Gelu":
			if _is_tanh_gelu:
				x = 0.5 * x * (1.0 + tanh(sqrt(2.0 / PI) * (x + 0.044715 * x * x * x)))
			else:
				x = 0.5 * x * (1.0 + erf(x / sqrt(2.0)))
	return x


func _of_ints(tensor: RLRuntime.OnnxTensor) -> Array[RLRuntime.OnnxTensor]:
	var made: PackedInt64Array = tensor.ints.duplicate()
	match node.op:
		"Not":
			for index: int in made.size():
				made[index] = 0 if made[index] else 1
		"Neg":
			for index: int in made.size():
				made[index] = -made[index]
		"Abs":
			for index: int in made.size():
				made[index] = absi(made[index])
		"Sign":
			for index: int in made.size():
				made[index] = signi(made[index])
		"Relu":
			for index: int in made.size():
				made[index] = maxi(made[index], 0)
		_:
			return fail("it cannot work on %s" % tensor.describe())
	return [RLRuntime.OnnxTensor.of_ints(made, tensor.dims, tensor.type)]


func _found(tensor: RLRuntime.OnnxTensor) -> Array[RLRuntime.OnnxTensor]:
	var made: PackedInt64Array = []
	made.resize(tensor.count())
	for index: int in made.size():
		var value: float = tensor.floats[index]
		var is_found: bool = is_nan(value)
		if node.op == "IsInf":
			is_found = is_inf(value) and (_finds_positive if value > 0.0 else _finds_negative)
		made[index] = 1 if is_found else 0
	return [RLRuntime.OnnxTensor.of_ints(made, tensor.dims, RLRuntime.OnnxTensor.Type.BOOL)]


## To the nearest whole number, halves to the even one.
static func round_even(x: float) -> float:
	var nearest: float = floorf(x + 0.5)
	if nearest - x == 0.5 and fmod(nearest, 2.0) != 0.0:
		nearest -= 1.0
	return nearest


static func softplus(x: float) -> float:
	return maxf(x, 0.0) + log(1.0 + exp(-absf(x)))


## Abramowitz and Stegun 7.1.26, within 1.5e-7; near zero the series, which keeps small numbers.
static func erf(x: float) -> float:
	var size: float = absf(x)
	if size < 0.1:
		var square: float = x * x
		return 2.0 / sqrt(PI) * x * (1.0 - square / 3.0 * (1.0 - 0.3 * square))
	var t: float = 1.0 / (1.0 + 0.3275911 * size)
	var sum: float = 1.061405429 * t - 1.453152027
	sum = (sum * t + 1.421413741) * t - 0.284496736
	sum = (sum * t + 0.254829592) * t
	return signf(x) * (1.0 - sum * exp(-size * size))
