class_name MenuTree
extends RefCounted
## What the menu of the UI scene consists of: pages of elements, and the ways through them.

enum Kind { PAGE, BACK, BUTTON, TOGGLE, SLIDER, ITEM, DROP, DISABLED }

## By page: text, kind and, of a page, where it leads.
const PAGES: Dictionary[String, Array] = {
	"main":
	[
		["Play", Kind.BUTTON],
		["Settings", Kind.PAGE, "settings"],
		["Inventory", Kind.PAGE, "inventory"],
		["Quit", Kind.DISABLED],
	],
	"settings":
	[
		["Audio", Kind.PAGE, "audio"],
		["Comfort", Kind.PAGE, "comfort"],
		["Credits", Kind.DISABLED],
		["Back", Kind.BACK, "main"],
	],
	"audio":
	[
		["Master volume", Kind.SLIDER],
		["Music volume", Kind.SLIDER],
		["Mute", Kind.TOGGLE],
		["Back", Kind.BACK, "settings"],
	],
	"comfort":
	[
		["Vignette", Kind.SLIDER],
		["Snap turn", Kind.TOGGLE],
		["Back", Kind.BACK, "settings"],
	],
	"inventory":
	[
		["Lantern", Kind.ITEM],
		["Sort", Kind.BUTTON],
		["Back", Kind.BACK, "main"],
		["Belt", Kind.DROP],
	],
}
const LEAF_KINDS: Array[Kind] = [Kind.BUTTON, Kind.TOGGLE, Kind.SLIDER, Kind.ITEM]


## The leaves: [page, slot] of everything that can be operated.
static func leaves() -> Array[Array]:
	var found: Array[Array] = []
	for page: String in PAGES:
		for slot: int in PAGES[page].size():
			if kind_of(page, slot) in LEAF_KINDS:
				found.append([page, slot])
	return found


static func kind_of(page: String, slot: int) -> Kind:
	return PAGES[page][slot][1] if slot < PAGES[page].size() else Kind.DISABLED


static func text_of(page: String, slot: int) -> String:
	return PAGES[page][slot][0]


## The slot of the first element of a kind; −1 if there is none.
static func slot_of(page: String, kind: Kind) -> int:
	for slot: int in PAGES[page].size():
		if kind_of(page, slot) == kind:
			return slot
	return -1


## The pages from the main one to this one.
static func path_to(page: String) -> Array[String]:
	var path: Array[String] = [page]
	while path[0] != "main":
		path.push_front(PAGES[path[0]][slot_of(path[0], Kind.BACK)][2])
	return path


## The slot to press on a page in order to come nearer to another one.
static func slot_toward(page: String, goal: String) -> int:
	var path: Array[String] = path_to(goal)
	if page in path:
		var next: String = path[path.find(page) + 1]
		for slot: int in PAGES[page].size():
			if kind_of(page, slot) == Kind.PAGE and PAGES[page][slot][2] == next:
				return slot
	return slot_of(page, Kind.BACK)


## How many presses away one page is from another.
static func distance(page: String, goal: String) -> int:
	var from: Array[String] = path_to(page)
	var to: Array[String] = path_to(goal)
	var shared: int = 0
	while shared < mini(from.size(), to.size()) and from[shared] == to[shared]:
		shared += 1
	return from.size() + to.size() - 2 * shared
