class_name HttpRequest
extends RefCounted
## A request that has arrived whole.

var method: String = ""
## Without the query.
var path: String = ""
var query: Dictionary[String, String] = {}
## By lower-case name.
var headers: Dictionary[String, String] = {}
var body: PackedByteArray = []
var keeps_alive: bool = true
## Whether it is known to carry the token.
var has_token: bool = false
## What is wrong with the body as JSON, or "".
var problem: String = ""


## The body as a JSON object, {} if it is empty; sets `problem`.
func json() -> Dictionary:
	problem = ""
	if body.is_empty():
		return {}
	var parser: JSON = JSON.new()
	if parser.parse(body.get_string_from_utf8()) != OK:
		problem = "the body is not JSON: %s" % parser.get_error_message()
	elif not parser.data is Dictionary:
		problem = "the body must be a JSON object"
	else:
		return parser.data
	return {}
