class_name RLCodec
extends RefCounted
## How a game speaks with its server: what it asks and tells, and how it reads the answer.

## Numbers in an action: move_x, move_z, jump.
const ACTION_SIZE: int = 3

## What is wrong with what the server said, or "".
var error: String = ""

var _matches: Array[TagMatch]
## Which of the two agents the server plays.
var _controlled: Array[bool]
## The agent that begins as the seeker, first on the wire, and the other.
var _first: int
var _second: int
## All actions, in the order of the wire.
var _actions: PackedFloat32Array = []


func _init(matches: Array[TagMatch], controlled: Array[bool]) -> void:
	_matches = matches
	_controlled = controlled
	_first = matches[0].first_seeker
	_second = 1 - _first


## Take note of what a decision brought, before any episode begins anew.
func record_results() -> void:
	pass


## What to send, text or bytes, to ask what to do now and tell what was noted.
func encode_request(_seq: int, _with_results: bool) -> Array:
	return []


## Take a message; true when the answer is complete.
func decode_reply(_message: Variant) -> bool:
	return false


## What the server wants an agent to do.
func action(arena: int, agent: int) -> PackedFloat32Array:
	var at: int = ACTION_SIZE * (2 * arena + (agent ^ _first))
	return _actions.slice(at, at + ACTION_SIZE)
