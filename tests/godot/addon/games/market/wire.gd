class_name Wire
extends Resource
