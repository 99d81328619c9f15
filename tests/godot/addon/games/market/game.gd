extends Node
## An autoload with an everyday name.

var sold: int = 0
