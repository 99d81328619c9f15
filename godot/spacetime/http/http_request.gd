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
	var read: Variant = json_value()
	if read is Dictionary:
		return read
	problem = problem if problem else "the body must be a JSON object"
	return {}


## The body as JSON, {} if it is empty; sets `problem`.
func json_value() -> Variant:
	problem = ""
	if body.is_empty():
		return {}
	var text: String = body.get_string_from_utf8()
	var parser: JSON = JSON.new()
	if text.to_utf8_buffer() != body:
		problem = "the body is not UTF-8"
	elif parser.parse(text) != OK:
		problem = "the body is not JSON: %s" % parser.get_error_message()
	else:
		return parser.data
	return null
