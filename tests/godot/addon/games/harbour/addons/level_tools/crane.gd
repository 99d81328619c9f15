extends Node3D
## A custom type of the plugin.
