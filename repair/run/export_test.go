package run

import "time"

// Observed makes a run tell of each line of its journal before and after the line is flushed.
func Observed(o Options, f func(r Record, flushed bool)) Options {
	o.observe = f
	return o
}

// Hasty shortens how long a run waits for a step and for a database.
func Hasty(o Options, step, transfer time.Duration) Options {
	o.limits = defaultLimits()
	o.limits.step, o.limits.transfer = step, transfer
	return o
}
