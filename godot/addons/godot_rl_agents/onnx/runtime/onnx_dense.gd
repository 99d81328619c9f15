extends RefCounted
## A matrix ready to be multiplied with, K×N, cut into 4×4 blocks that Godot multiplies natively.
##
## `Projection * Vector4` does sixteen products in one instruction; what costs is fetching the
## blocks. So a kernel, unrolled for the matrix's own size, keeps each block in a variable of its
## own: five times quicker than a loop over an array of blocks. Kernels are at most TILE×TILE
## blocks and are shared by all matrices of their size.

const TILE: int = 16

static var _kernels: Dictionary[Vector2i, GDScript] = {}
static var _lock: Mutex = Mutex.new()
## Whether Godot was built with vectors of doubles.
static var _has_doubles: bool = OS.has_feature("double")

var rows: int
var columns: int

var _bias: PackedVector4Array = []
## By block of columns, then by block of rows.
var _tiles: Array[RefCounted] = []
var _row_blocks: int
var _column_blocks: int


## Args: `weights` K×N row by row, or N×K if `is_turned`; `bias` N numbers or none.
func _init(
	weights: PackedFloat32Array,
	k: int,
	n: int,
	is_turned: bool = false,
	bias: PackedFloat32Array = []
) -> void:
	rows = k
	columns = n
	_row_blocks = (k + 3) >> 2
	_column_blocks = (n + 3) >> 2
	var padded: PackedFloat32Array = bias.duplicate()
	padded.resize(4 * _column_blocks)
	_bias = to_vectors(padded)
	for to: int in range(0, _column_blocks, TILE):
		for from: int in range(0, _row_blocks, TILE):
			var size: Vector2i = Vector2i(
				mini(TILE, _row_blocks - from), mini(TILE, _column_blocks - to)
			)
			var blocks: Array[Projection] = []
			for column: int in range(to, to + size.y):
				for row: int in range(from, from + size.x):
					blocks.append(_block(weights, 4 * row, 4 * column, is_turned))
			_tiles.append(_kernel(size).new(blocks))


## The work of one product with `m` rows, for a budget.
func work(m: int) -> int:
	return m * _row_blocks * _column_blocks


## The product with an m×K matrix, bias added: m×N numbers, row by row.
func multiply(left: PackedFloat32Array, m: int) -> PackedFloat32Array:
	return activated(left, m, "")


## The same, through Relu, Tanh, Sigmoid or nothing.
func activated(left: PackedFloat32Array, m: int, activation: String) -> PackedFloat32Array:
	var vectors: PackedVector4Array = _multiply(_rows_of(left, m), m)
	activate(vectors, activation)
	var wide: PackedFloat32Array = to_floats(vectors)
	if columns & 3 == 0:
		return wide
	if m == 1:
		wide.resize(columns)
		return wide
	var product: PackedFloat32Array = []
	for row: int in m:
		var at: int = 4 * row * _column_blocks
		product.append_array(wide.slice(at, at + columns))
	return product


## The rows of an m×K matrix as vectors, each row filled up with zeros.
func _rows_of(left: PackedFloat32Array, m: int) -> PackedVector4Array:
	if rows & 3 == 0:
		return to_vectors(left)
	var padded: PackedFloat32Array = []
	for row: int in m:
		padded.append_array(left.slice(row * rows, (row + 1) * rows))
		padded.resize(4 * (row + 1) * _row_blocks)
	return to_vectors(padded)


## The same product on vectors: m rows, each filled up to a whole number of them.
func _multiply(left: PackedVector4Array, m: int) -> PackedVector4Array:
	if m == 0:
		return PackedVector4Array()
	var product: PackedVector4Array = bias_for(m)
	add_to(product, 0, left, 0, _row_blocks, m)
	return product


## The bias as m rows of vectors, to add a product to.
func bias_for(m: int) -> PackedVector4Array:
	var product: PackedVector4Array = _bias.duplicate()
	while product.size() < m * _column_blocks:
		product.append_array(product.slice(0, m * _column_blocks - product.size()))
	return product


## Add the product with m rows to those of `product` from `row` on. Rows of `left` begin at vector
## `at`, `step` vectors apart; they may overlap.
func add_to(
	product: PackedVector4Array, row: int, left: PackedVector4Array, at: int, step: int, m: int
) -> void:
	var first: int = row * _column_blocks
	var tile: int = 0
	for to: int in range(0, _column_blocks, TILE):
		for from: int in range(0, _row_blocks, TILE):
			_tiles[tile].call(&"add", left, at + from, step, product, first + to, _column_blocks, m)
			tile += 1


## Relu, Tanh, Sigmoid or nothing.
static func activate(vectors: PackedVector4Array, activation: String) -> void:
	match activation:
		"Relu":
			for index: int in vectors.size():
				vectors[index] = vectors[index].max(Vector4.ZERO)
		"Tanh":
			for index: int in vectors.size():
				var v: Vector4 = vectors[index]
				vectors[index] = Vector4(tanh(v.x), tanh(v.y), tanh(v.z), tanh(v.w))
		"Sigmoid":
			for index: int in vectors.size():
				var v: Vector4 = vectors[index]
				vectors[index] = Vector4(
					1.0 / (1.0 + exp(-v.x)),
					1.0 / (1.0 + exp(-v.y)),
					1.0 / (1.0 + exp(-v.z)),
					1.0 / (1.0 + exp(-v.w))
				)


func _block(weights: PackedFloat32Array, row: int, column: int, is_turned: bool) -> Projection:
	var block: Projection = Projection(Vector4(), Vector4(), Vector4(), Vector4())
	for down: int in mini(4, rows - row):
		var line: Vector4 = Vector4()
		for right: int in mini(4, columns - column):
			line[right] = (
				weights[(column + right) * rows + row + down]
				if is_turned
				else weights[(row + down) * columns + column + right]
			)
		block[down] = line
	return block


## The kernel for tiles of size.x blocks of rows by size.y blocks of columns.
static func _kernel(size: Vector2i) -> GDScript:
	_lock.lock()
	if not _kernels.has(size):
		var script: GDScript = GDScript.new()
		script.source_code = _kernel_source(size)
		script.reload()
		_kernels[size] = script
	var kernel: GDScript = _kernels[size]
	_lock.unlock()
	return kernel


static func _kernel_source(size: Vector2i) -> String:
	var members: PackedStringArray = []
	var setting: PackedStringArray = []
	for block: int in size.x * size.y:
		members.append("var b%d: Projection" % block)
		setting.append("\tb%d = blocks[%d]" % [block, block])
	var loading: PackedStringArray = []
	for row: int in size.x:
		loading.append("\t\tvar v%d: Vector4 = x[x_at + %d]" % [row, row])
	var adding: PackedStringArray = []
	for column: int in size.y:
		var terms: PackedStringArray = []
		for row: int in size.x:
			terms.append("b%d * v%d" % [column * size.x + row, row])
		adding.append("\t\ty[y_at + %d] += %s" % [column, " + ".join(terms)])
	var lines: PackedStringArray = ["extends RefCounted"]
	lines.append_array(members)
	lines.append("func _init(blocks: Array[Projection]) -> void:")
	lines.append_array(setting)
	lines.append("func add(x: PackedVector4Array, x_at: int, x_step: int,")
	lines.append("\t\ty: PackedVector4Array, y_at: int, y_step: int, rows: int) -> void:")
	lines.append("\tfor _row: int in rows:")
	lines.append_array(loading)
	lines.append_array(adding)
	lines.append("\t\tx_at += x_step")
	lines.append("\t\ty_at += y_step")
	return "\n".join(lines) + "\n"


static func to_vectors(values: PackedFloat32Array) -> PackedVector4Array:
	if not _has_doubles:
		return values.to_byte_array().to_vector4_array()
	var wide: PackedFloat64Array = []
	wide.resize(values.size())
	for index: int in values.size():
		wide[index] = values[index]
	return wide.to_byte_array().to_vector4_array()


static func to_floats(vectors: PackedVector4Array) -> PackedFloat32Array:
	if not _has_doubles:
		return vectors.to_byte_array().to_float32_array()
	var narrow: PackedFloat32Array = []
	for value: float in vectors.to_byte_array().to_float64_array():
		narrow.append(value)
	return narrow
