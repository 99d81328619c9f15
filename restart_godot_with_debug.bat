@echo off
rem Runs the VR locomotion scene with its HTTP API on port 8080, in a window.
cd /d "%~dp0"
python -m estragon spacetime run --window %*
