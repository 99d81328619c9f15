extends RefCounted
## An agent that a policy plays: what it saw and did last, and whether its episode is a new one.

var agent: RLAddon.Agent
## What plays it.
var model: GodotRLModel
## What that said last, by output; empty before it said anything.
var said: Dictionary = {}
## What it was given from one decision to the next.
var reward: float = 0.0
## What it was given in its episode so far, and in all of the last one.
var earned: float = 0.0
var last_return: float = 0.0
## How many of its episodes are over.
var episodes: int = 0
## Whether the game has just called its episode over.
var is_over: bool = false
## Whether its episode began after the last decision.
var is_new: bool = true

var _actions: RLAddon.GodotRLActions
## The episode of the last decision, and that of the last reward.
var _episode: int = 0
var _rewarded: int = 0


func _init(of: Node, id: int, game_seed: int) -> void:
	agent = RLAddon.Agent.new(of, id, game_seed)
	agent.episode.keeps_ends = false
	agent.episode.clear()


## Be played by this model from now on. What does not fit, and then nothing changes, or "".
func take(other: GodotRLModel) -> String:
	var problem: String = agent.problem
	problem = problem if problem else RLAddon.ModelAbout.misfit(other.metadata, agent.spaces)
	problem = problem if problem else other.misfit(agent.see())
	if problem:
		return problem
	var size: int = other.output_size()
	if size == 0:
		size = other.actions_in(other.predict(agent.seen, agent.id)).size()
		problem = other.error
		other.reset(agent.id)
	var actions: RLAddon.GodotRLActions = RLAddon.GodotRLActions.new(
		agent.spaces.action_space, size
	)
	problem = problem if problem else actions.error
	if not problem:
		model = other
		_actions = actions
		said = {}
		is_new = true
	return problem


## Take its reward, and note whether its episode is over; games may say so only then.
func reckon() -> void:
	reward = agent.node.get_reward()
	agent.node.zero_reward()
	is_over = agent.node.get_done() or agent.node.get("truncated") == true
	if is_over:
		agent.episode.begin_next()
	is_new = is_new or agent.episode.number != _episode
	earned += reward
	if agent.episode.number != _rewarded:
		_rewarded = agent.episode.number
		last_return = earned
		earned = 0.0
		episodes += 1


## It is decided upon.
func settle() -> void:
	agent.episode.play()
	_episode = agent.episode.number
	is_new = false


## Decide by what its model says, drawn where there is a generator; a game's own Sync may have its
## own way. False if that is no action.
func choose(by: Dictionary, random: RandomNumberGenerator, extract: Callable) -> bool:
	var numbers: PackedFloat32Array = model.actions_in(by)
	if numbers.size() != _actions.numbers:
		return false
	said = by
	if extract.is_valid():
		agent.note_action(
			extract.call(Array(numbers), agent.spaces.action_space, not _actions.has_spreads)
		)
	else:
		agent.note_action(_actions.decode(numbers, random, agent.mask()))
	for number: float in numbers:
		# What is no number would stay in a memory for good.
		is_new = is_new or is_nan(number)
	return true
