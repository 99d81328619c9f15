class_name Sounds
extends RefCounted
## A global class that needs a file which was never committed.

const CRASH := preload("res://art/crash.wav")
const HORN: AudioStream = preload("art/horn.ogg")
# const OLD := preload("res://art/old.wav")
