extends RefCounted
## What an agent sees and does: the keys, kinds and sizes, in the order in which the wire has them.

const NUMERIC: Array[int] = [TYPE_BOOL, TYPE_INT, TYPE_FLOAT]
const PACKED: Array[int] = [
	TYPE_PACKED_FLOAT32_ARRAY,
	TYPE_PACKED_FLOAT64_ARRAY,
	TYPE_PACKED_INT32_ARRAY,
	TYPE_PACKED_INT64_ARRAY,
]

var observation_space: Dictionary = {}
var action_space: Dictionary = {}
## The actions that come with a mask, and how many choices each has.
var mask_sizes: Dictionary = {}
## What is seen in numbers, and how many each has.
var number_keys: Array = []
var number_sizes: PackedInt32Array = []
## What is seen in pictures, and how many bytes each has.
var image_keys: Array = []
var image_sizes: PackedInt32Array = []
## The one list of numbers that is seen, and its length; 0 where there is more to see.
var lone_key: Variant = null
var lone_size: int = 0
## What is done, how many numbers say it, and for a discrete action how many choices there are.
var action_keys: Array = []
var action_widths: PackedInt32Array = []
var action_choices: PackedInt32Array = []
## How many numbers say all that is done.
var action_width: int = 0
## What is wrong with the spaces, or "".
var problem: String = ""


func _init(observations: Dictionary, actions: Dictionary, mask: Dictionary) -> void:
	observation_space = observations
	action_space = actions
	for key: Variant in observations:
		_read_observation(key, observations[key])
	if number_keys.size() == 1 and not image_keys:
		lone_key = number_keys[0]
		lone_size = number_sizes[0]
	for key: Variant in actions:
		_read_action(key, actions[key])
	for key: Variant in actions:
		if key in mask:
			_read_mask(key, mask[key])
	for key: Variant in mask:
		if key not in actions:
			_complain("a mask for '%s', which is no action" % key)


## The spaces of what an agent sees now.
static func guess(seen: Dictionary) -> Dictionary:
	var spaces: Dictionary = {}
	for key: Variant in seen:
		spaces[key] = {"size": _shape(seen[key]), "space": "box"}
	return spaces


static func _shape(value: Variant) -> Array:
	if typeof(value) in NUMERIC:
		return [1]
	if typeof(value) in PACKED:
		return [value.size()]
	var shape: Array = []
	while value is Array:
		shape.append(value.size())
		value = value[0] if value else null
	return shape


## The numbers of a value: one, a list, or lists in lists.
static func numbers_of(value: Variant) -> PackedFloat32Array:
	match typeof(value):
		TYPE_ARRAY:
			if value and value[0] is Array:
				var numbers: PackedFloat32Array = []
				for part: Variant in value:
					numbers.append_array(numbers_of(part))
				return numbers
			return PackedFloat32Array(value)
		TYPE_PACKED_FLOAT32_ARRAY:
			return value
		TYPE_PACKED_FLOAT64_ARRAY, TYPE_PACKED_INT32_ARRAY, TYPE_PACKED_INT64_ARRAY:
			return PackedFloat32Array(Array(value))
		TYPE_FLOAT, TYPE_INT, TYPE_BOOL:
			return PackedFloat32Array([value])
	return PackedFloat32Array()


## Write what is seen in numbers; what is wrong with it, or "".
func pack_numbers(seen: Dictionary, into: PackedFloat32Array) -> String:
	for i: int in number_keys.size():
		var numbers: PackedFloat32Array = numbers_of(seen.get(number_keys[i]))
		if numbers.size() != number_sizes[i]:
			var says: Array = [number_keys[i], numbers.size(), number_sizes[i]]
			return "observation '%s' has %d numbers, its space says %d" % says
		into.append_array(numbers)
	return ""


## Write what is seen in pictures, from hex or bytes; what is wrong with it, or "".
func pack_images(seen: Dictionary, into: PackedByteArray) -> String:
	for i: int in image_keys.size():
		var picture: Variant = seen.get(image_keys[i])
		var bytes: PackedByteArray = []
		if picture is String:
			bytes = picture.hex_decode()
		elif picture is PackedByteArray:
			bytes = picture
		if bytes.size() != image_sizes[i]:
			var says: Array = [image_keys[i], bytes.size(), image_sizes[i]]
			return "observation '%s' has %d bytes, its space says %d" % says
		into.append_array(bytes)
	return ""


## Write which choices are allowed, all where nothing is said; what is wrong with it, or "".
func pack_mask(mask: Dictionary, into: PackedByteArray) -> String:
	for key: Variant in mask_sizes:
		var allowed: PackedByteArray = []
		if mask.get(key) is Array or mask.get(key) is PackedByteArray:
			allowed = PackedByteArray(mask[key])
		else:
			allowed.resize(mask_sizes[key])
			allowed.fill(1)
		if allowed.size() != mask_sizes[key]:
			return (
				"the mask of '%s' has %d choices, not %d" % [key, allowed.size(), mask_sizes[key]]
			)
		into.append_array(allowed)
	return ""


## The action that these numbers say, from the one at `at` on; null if they say none.
func unpack_action(numbers: PackedFloat32Array, at: int) -> Variant:
	var action: Dictionary = {}
	for i: int in action_keys.size():
		if action_choices[i]:
			var choice: int = int(numbers[at])
			if choice != numbers[at] or choice < 0 or choice >= action_choices[i]:
				return null
			action[action_keys[i]] = choice
			at += 1
		elif action_widths[i] == 1:
			action[action_keys[i]] = [numbers[at]]
			at += 1
		else:
			action[action_keys[i]] = Array(numbers.slice(at, at + action_widths[i]))
			at += action_widths[i]
	return action


## The same spaces?
func equals(other: RefCounted) -> bool:
	return (
		observation_space == other.observation_space
		and action_space == other.action_space
		and mask_sizes == other.mask_sizes
	)


## What is wrong with an observation that the wire cannot say, or "".
func check(seen: Dictionary) -> String:
	for key: Variant in number_keys:
		if key not in seen:
			return "get_obs gives no '%s', which is in the observation space" % key
		if not _is_numeric(seen[key]):
			return "observation '%s' holds something other than numbers" % key
	var problem_now: String = pack_numbers(seen, PackedFloat32Array())
	return problem_now if problem_now else pack_images(seen, PackedByteArray())


static func _is_numeric(value: Variant) -> bool:
	if value is Array:
		return value.all(_is_numeric)
	return typeof(value) in NUMERIC or typeof(value) in PACKED


func _read_observation(key: Variant, space: Variant) -> void:
	if not space is Dictionary or space.get("space") not in ["box", "discrete"]:
		_complain("the space of observation '%s' is neither box nor discrete" % key)
		return
	var size: int = 1
	if space["space"] == "box":
		var lengths: Variant = space.get("size")
		for length: int in PackedInt32Array(lengths if lengths is Array else [lengths]):
			size *= length
	if space["space"] == "box" and "2d" in str(key):
		image_keys.append(key)
		image_sizes.append(size)
	else:
		number_keys.append(key)
		number_sizes.append(size)


func _read_action(key: Variant, space: Variant) -> void:
	var kind: Variant = space.get("action_type") if space is Dictionary else null
	var size: Variant = space.get("size") if space is Dictionary else null
	if kind not in ["discrete", "continuous"]:
		_complain("action '%s' is neither discrete nor continuous" % key)
	elif typeof(size) not in [TYPE_INT, TYPE_FLOAT] or size < 1:
		_complain("action '%s' has the size %s, not a number above 0" % [key, size])
	else:
		action_keys.append(key)
		action_widths.append(1 if kind == "discrete" else int(size))
		action_choices.append(int(size) if kind == "discrete" else 0)
		action_width += action_widths[-1]


func _read_mask(key: Variant, allowed: Variant) -> void:
	var choices: int = action_choices[action_keys.find(key)] if key in action_keys else 0
	if not choices:
		_complain("a mask for '%s', which is no discrete action" % key)
	elif not (allowed is Array or allowed is PackedByteArray) or allowed.size() != choices:
		_complain("the mask of '%s' is not a list of %d choices" % [key, choices])
	else:
		mask_sizes[key] = choices


func _complain(text: String) -> void:
	problem = problem if problem else text
