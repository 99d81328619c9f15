class_name RLCodec
extends RefCounted
## Encodes a game's requests and results for the server, and decodes its replies.

## Numbers in an action: move_x, move_z, jump.
const ACTION_SIZE: int = 3

## What is wrong with the reply, or "".
var error: String = ""

var _matches: Array[TagMatch]
## Which of the two agents the server plays.
var _controlled: Array[bool]
## The agent that starts as the seeker is first in every message.
var _first: int
var _second: int
## All actions, in the order of the messages.
var _actions: PackedFloat32Array = []


func _init(matches: Array[TagMatch], controlled: Array[bool]) -> void:
	_matches = matches
	_controlled = controlled
	_first = matches[0].first_seeker
	_second = 1 - _first


## Keep the results of a decision, before any new episode starts.
func record_results() -> void:
	pass


## Messages, text or bytes, that request actions and report the results kept.
func encode_request(_seq: int, _with_results: bool) -> Array:
	return []


## Read a message; true when the reply is complete.
func decode_reply(_message: Variant) -> bool:
	return false


## The server's action for an agent.
func action(arena: int, agent: int) -> PackedFloat32Array:
	var at: int = ACTION_SIZE * (2 * arena + (agent ^ _first))
	return _actions.slice(at, at + ACTION_SIZE)
