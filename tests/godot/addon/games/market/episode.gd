class_name Episode
extends Resource
