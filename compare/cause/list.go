package cause

// All returns the catalogue in the order of preference: of two causes that fit the same first break, the earlier is named
// first. A new cause is one file and one line here.
func All() []Cause {
	return []Cause{}
}
