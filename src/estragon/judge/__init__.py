"""What judges: matches between players, speed, and later whole builds."""
