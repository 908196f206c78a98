package check

// All returns every check in the order they are run and reported. A new check is one file and one line here.
func All() []Check {
	return []Check{}
}
