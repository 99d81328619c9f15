class_name TagStreams
extends RefCounted
## Random numbers that depend only on what they are for: Threefry-2x32, 20 rounds.

## Purposes: each has 2^24 draws of its own in an episode.
enum Purpose { SPAWN = 1, FACING = 2, LAYOUT = 3, BOXES = 4, ACTION = 5 }

const MASK: int = 0xFFFFFFFF
const PARITY: int = 0x1BD11BDA
const WORDS: float = 4294967296.0
const EVEN_ROTATIONS: Array[int] = [13, 15, 26, 6]
const ODD_ROTATIONS: Array[int] = [17, 29, 16, 24]


## Two random 32-bit words for a 64-bit key and a 64-bit counter, each as two words.
static func threefry(key_0: int, key_1: int, first: int, second: int) -> PackedInt64Array:
	var keys: Array[int] = [key_0, key_1, PARITY ^ key_0 ^ key_1]
	first = (first + key_0) & MASK
	second = (second + key_1) & MASK
	for block: int in 5:
		for rotation: int in EVEN_ROTATIONS if block % 2 == 0 else ODD_ROTATIONS:
			first = (first + second) & MASK
			second = ((second << rotation) | (second >> (32 - rotation))) & MASK
			second = second ^ first
		first = (first + keys[(block + 1) % 3]) & MASK
		second = (second + keys[(block + 2) % 3] + block + 1) & MASK
	return PackedInt64Array([first, second])


## Two numbers in [0, 1), for a purpose in an arena's episode.
static func uniform_pair(
	seed_value: int, arena: int, episode: int, purpose: Purpose, index: int
) -> PackedFloat64Array:
	var words: PackedInt64Array = threefry(seed_value, arena, episode, (purpose << 24) | index)
	return PackedFloat64Array([words[0] / WORDS, words[1] / WORDS])
