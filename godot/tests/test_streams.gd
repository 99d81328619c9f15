extends TagTest
## Random numbers: the published answers of Threefry, and streams that never meet.


func test_threefry_gives_the_published_answers() -> void:
	var words: PackedInt64Array = TagStreams.threefry(0, 0, 0, 0)
	check_equal(words, PackedInt64Array([0x6B200159, 0x99BA4EFE]), "all zeros")
	var ones: int = 0xFFFFFFFF
	words = TagStreams.threefry(ones, ones, ones, ones)
	check_equal(words, PackedInt64Array([0x1CB996FC, 0xBB002BE7]), "all ones")
	words = TagStreams.threefry(0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3)
	check_equal(words, PackedInt64Array([0xC4923A9C, 0x483DF7A0]), "digits of pi")


func test_a_pair_is_the_two_words_as_shares() -> void:
	var words: PackedInt64Array = TagStreams.threefry(7, 3, 11, (2 << 24) | 5)
	var pair: PackedFloat64Array = TagStreams.uniform_pair(7, 3, 11, TagStreams.Purpose.FACING, 5)
	check_equal(pair[0], words[0] / 4294967296.0, "the first word")
	check_equal(pair[1], words[1] / 4294967296.0, "the second word")


func test_pairs_are_shares_and_even() -> void:
	var sum: float = 0.0
	for index: int in 2000:
		for share: float in TagStreams.uniform_pair(1, 0, 0, TagStreams.Purpose.SPAWN, index):
			check(share >= 0.0 and share < 1.0, "%f is no share" % share)
			sum += share
	check_near(sum / 4000.0, 0.5, 0.02, "the mean")


func test_streams_never_meet() -> void:
	var seen: Dictionary[PackedFloat64Array, String] = {}
	for stream: int in 4:
		for index: int in 200:
			var in_seed: int = index if stream == 0 else 1000
			var in_arena: int = index if stream == 1 else 1000
			var in_episode: int = index if stream == 2 else 1000
			var in_draws: int = index if stream == 3 else 1000
			var pair: PackedFloat64Array = TagStreams.uniform_pair(
				in_seed, in_arena, in_episode, TagStreams.Purpose.SPAWN, in_draws
			)
			var name: String = "stream %d, index %d" % [stream, index]
			check(not seen.has(pair), "%s repeats %s" % [name, seen.get(pair, "")])
			seen[pair] = name
