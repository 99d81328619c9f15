extends RefCounted
## The weights of a convolution over images whose pixels are vectors of four channels each.
##
## In such an image the pixels under one row of the window lie side by side, so that a row of
## results is one strided product for each row of the window: nothing has to be gathered.

## Vectors of a pixel, of the image and of the result.
var blocks: int
var made_blocks: int

var _rows: Array[RLRuntime.OnnxDense] = []


## Args: weights of made×channels×height×width, what they are multiplied by, and the bias.
func _init(weights: RLRuntime.OnnxTensor, factor: float, bias: PackedFloat32Array) -> void:
	var made: int = weights.dims[0]
	var channels: int = weights.dims[1]
	var height: int = weights.dims[2]
	var width: int = weights.dims[3]
	blocks = (channels + 3) >> 2
	made_blocks = (made + 3) >> 2
	var depth: int = 4 * blocks * width
	for row: int in height:
		var matrix: PackedFloat32Array = []
		matrix.resize(made * depth)
		for to: int in made:
			for channel: int in channels:
				var from: int = ((to * channels + channel) * height + row) * width
				for place: int in width:
					matrix[to * depth + 4 * place * blocks + channel] = (
						factor * weights.floats[from + place]
					)
		var added: PackedFloat32Array = bias if row == 0 else PackedFloat32Array()
		_rows.append(RLRuntime.OnnxDense.new(matrix, depth, made, true, added))


## The results for an image from the vector `at` on, `line` vectors a line: a vector for every
## position, line by line, and every four channels.
func convolve(
	image: PackedVector4Array, at: int, line: int, positions: Vector2i, strides: Vector2i
) -> PackedVector4Array:
	var product: PackedVector4Array = _rows[0].bias_for(positions.x * positions.y)
	for y: int in positions.x:
		for row: int in _rows.size():
			_rows[row].add_to(
				product,
				y * positions.y,
				image,
				at + (y * strides.x + row) * line,
				strides.y * blocks,
				positions.y
			)
	return product
