extends RefCounted
## A model and the agents that it controls, evaluated in one batch.
##
## On a worker thread, a decision takes effect when the next one is due. Agents that started a new
## episode in the meantime do not get it, and until the thread is done all keep their last action.

## The path of its file, or what else to call it.
var name: String
var model: GodotRLModel
## Why it cannot be run, or "".
var problem: String = ""
var players: Array[RLAddon.InferenceAgent] = []
## Those whom it cannot go on playing, and why.
var lost: Dictionary[RLAddon.InferenceAgent, String] = {}

## Those who are thought about on the thread.
var _asked: Array[RLAddon.InferenceAgent] = []
## Those for whom it is known what to do, and that.
var _answered: Array[RLAddon.InferenceAgent] = []
var _answers: Array = []
var _is_thinking: bool = false
## Those who left, and are to be forgotten.
var _left: Array[int] = []


func _init(of: GodotRLModel, called: String) -> void:
	model = of
	name = called
	if not model.is_loaded():
		problem = model.error if model.error else "no model is loaded"


func remove(player: RLAddon.InferenceAgent) -> void:
	players.erase(player)
	_left.append(player.agent.id)


## Look at all, and forget what was before the episodes that are new.
func observe(sync: Sync) -> void:
	_is_thinking = model.is_busy()
	if _is_thinking:
		return
	if _asked:
		_take(model.result(), _asked)
		_asked = []
	for id: int in _left:
		model.reset(id)
	_left.clear()
	RLAddon.Agent.observe(players.map(_agent_of), sync)
	for player: RLAddon.InferenceAgent in players:
		if player.is_new:
			model.reset(player.agent.id)


func think(on_a_thread: bool) -> void:
	if _is_thinking or players.is_empty():
		return
	var seen: Array = []
	var ids: Array = []
	for player: RLAddon.InferenceAgent in players:
		player.settle()
		seen.append(player.agent.seen)
		ids.append(player.agent.id)
	if on_a_thread:
		_asked = players.duplicate()
		model.start(seen, ids)
	else:
		_take(model.predict(seen, ids), players)


func act(sync: Sync, extract: Callable) -> void:
	var random: RandomNumberGenerator = null if sync.deterministic_inference else model.random
	var actions: Array[Dictionary] = []
	var nodes: Array[Node] = []
	for place: int in _answered.size():
		var player: RLAddon.InferenceAgent = _answered[place]
		if player.model != model:
			continue
		if player.choose(_answers[place], random, extract):
			actions.append(player.agent.action)
			nodes.append(player.agent.node)
		else:
			lost[player] = "it gives another number of outputs than before"
	_answered = []
	sync._set_agent_actions(actions, nodes)


## What was thought; it is nothing to those whose episode is a new one.
func _take(answers: Array, who: Array[RLAddon.InferenceAgent]) -> void:
	_answers = []
	_answered = []
	if model.error:
		_blame(model.error)
		return
	for place: int in who.size():
		if not who[place].is_new:
			_answers.append(answers[place])
			_answered.append(who[place])


## Find the agents whose observations the model rejects; if none stands out, report all of them.
func _blame(error: String) -> void:
	for player: RLAddon.InferenceAgent in players:
		var misfit: String = model.misfit(player.agent.seen)
		if misfit:
			lost[player] = misfit
	if lost.is_empty():
		for player: RLAddon.InferenceAgent in players:
			lost[player] = error


static func _agent_of(player: RLAddon.InferenceAgent) -> RLAddon.Agent:
	return player.agent
