class_name Agent
extends Resource
