package node

// embedded finds the server of a line that does not have to be linked into this program.
func embedded(int) (Server, bool) { return Server{}, false }

// runHiddenLine becomes the embedded server of a line.
func runHiddenLine([]string) (handled bool, exitCode int) { return false, 0 }
