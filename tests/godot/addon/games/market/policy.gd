class_name Policy
extends Resource
