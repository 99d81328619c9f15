class_name Space
extends Resource
