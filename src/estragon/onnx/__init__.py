"""Policies as files that other programs run: ONNX, in Godot and elsewhere."""
