extends RefCounted
## An agent's episode: its number, its seed, and how it ended, until that is reported.
##
## An end is kept the moment it happens: with what the agent saw last, and at the end of that tick
## with its reward. What the agent does until the next report belongs to its next episode.

## How an episode ended; the numbers are those of the wire.
enum { GOING = 0, TERMINATED = 1, TRUNCATED = 2 }

const MASK: int = 0xFFFFFFFF

## The number of the physics tick.
static var tick: int = 0

static var _unpaid: Array[RefCounted] = []

## The agent's id on the wire.
var id: int = 0
## How many episodes there were before this one.
var number: int = 0
## What this episode's chances are drawn from.
var episode_seed: int = 0
## Whether ends are kept as they happen; if not, `done` is merely what the game says.
var keeps_ends: bool = false
## How the episode that is to be reported ended; GOING if it did not.
var state: int = GOING
## The reward of the report.
var reward: float = 0.0
## What the agent saw last in the episode that ended; empty if that is not known.
var last: Dictionary = {}
## The parameters of the next episode, once the trainer has sent them.
var next_parameters: Variant = null

var _agent: Node
var _game_seed: int = 0
## Whether nobody has acted in this episode yet: then it need not be followed by another.
var _is_fresh: bool = true
var _is_paid: bool = false
var _ended_tick: int = 0
var _reset_tick: int = 0
var _is_reset: bool = false
## Whether the next reset by the game belongs to an episode whose parameters are in force already.
var _has_parameters: bool = false


func _init(agent: Node) -> void:
	_agent = agent


## Take the reward of every episode that ended in this tick.
static func pay() -> void:
	for episode: RefCounted in _unpaid:
		episode._pay()
	_unpaid.clear()


## The seed of an agent's episode in a game.
static func mix(game_seed: int, agent_id: int, episode_number: int) -> int:
	var x: int = game_seed * 0x9E3779B1 + agent_id * 0x85EBCA6B + episode_number * 0xC2B2AE35
	x &= MASK
	x = ((x ^ (x >> 16)) * 0x7FEB352D) & MASK
	x = ((x ^ (x >> 15)) * 0x846CA68B) & MASK
	return x ^ (x >> 16)


## Begin at the first episode of a game with this seed.
func restart(game_seed: int) -> void:
	_game_seed = game_seed
	number = 0
	_is_fresh = true
	episode_seed = mix(_game_seed, id, number)


## Somebody acts.
func play() -> void:
	_is_fresh = false


## What comes now is the next episode.
func begin_next() -> void:
	if _is_fresh:
		return
	number += 1
	_is_fresh = true
	episode_seed = mix(_game_seed, id, number)


## An episode starts; the game has yet to reset the agent.
func start_parameters() -> void:
	if _take_parameters():
		_has_parameters = true


## The game has put the agent back to a start.
func note_reset() -> void:
	_is_reset = true
	_reset_tick = tick
	begin_next()
	if not _has_parameters:
		_take_parameters()
	_has_parameters = false


## The game says that the episode is over.
func end(is_truncated: bool) -> void:
	if not keeps_ends:
		begin_next()
		start_parameters()
	elif state == GOING:
		state = TRUNCATED if is_truncated or _is_over_time() else TERMINATED
		_ended_tick = tick
		_is_reset = false
		_is_paid = false
		last = _agent.get_obs().duplicate(true)
		_unpaid.append(self)
		begin_next()
		start_parameters()
	elif is_truncated and tick == _ended_tick:
		state = TRUNCATED
	elif _is_reset and tick > _reset_tick:
		# It began and ended between two actions: nobody is told of it, nor of its reward.
		_is_reset = false
		_unpaid.append(self)


## The time limit is reached. A `done` that the game sets because of it is no other end.
func end_by_limit() -> void:
	if keeps_ends:
		end(true)


## Take the reward, unless that of an end is taken. Games may say so late that it is one.
func take_reward() -> void:
	if state != GOING:
		return
	reward += _agent.get_reward()
	_agent.zero_reward()
	if state == GOING and _agent.get_done():
		end(false)
	if state != GOING:
		_unpaid.erase(self)
		_is_paid = true


## The agent has left the game: it saw this last, and got this since the last report.
func leave(seen: Dictionary, earned: float) -> void:
	if state == GOING:
		state = TRUNCATED
		last = seen
		reward += earned
	elif not _is_paid:
		reward += earned
	_is_paid = true
	_unpaid.erase(self)


## Go on where another agent's episodes left off.
func follow(other: RefCounted) -> void:
	id = other.id
	number = other.number
	_game_seed = other._game_seed
	next_parameters = other.next_parameters
	_is_fresh = false
	begin_next()
	_take_parameters()


## It is reported.
func clear() -> void:
	reward = 0.0
	if state == GOING:
		return
	state = GOING
	last = {}
	_unpaid.erase(self)
	if is_instance_valid(_agent):
		forget_end()


## Whatever the game said of an end does not count.
func forget_end() -> void:
	_agent.set_done_false()
	if "truncated" in _agent:
		_agent.truncated = false


func _pay() -> void:
	if not is_instance_valid(_agent):
		return
	if not _is_paid:
		reward += _agent.get_reward()
		_is_paid = true
	_agent.zero_reward()


func _take_parameters() -> bool:
	if next_parameters == null:
		return false
	var values: Dictionary = next_parameters
	next_parameters = null
	RLAddon.ParameterStore.apply(_agent, id, values)
	return true


func _is_over_time() -> bool:
	return "reset_after" in _agent and _agent.n_steps > _agent.reset_after
