"""Training of VR navigation: `estragon train spacetime`."""
