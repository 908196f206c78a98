package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcd-medic/etcd-medic/compare/explain"
)

// near returns the names that may have been meant: those that start with the word, or differ by at most two typing
// errors.
func near(word string, names []string) (out []string) {
	if len(word) > 64 { // no name is as long
		return nil
	}
	best := 3
	for _, n := range names {
		d := explain.Distance(strings.ToLower(word), strings.ToLower(n))
		if len(word) >= 3 && strings.HasPrefix(strings.ToLower(n), strings.ToLower(word)) {
			d = min(d, 1)
		}
		switch {
		case d >= len(word) || d > best || d > 2:
		case d < best:
			out, best = []string{n}, d
		default:
			out = append(out, n)
		}
	}
	return out
}

// didYouMean returns a hint, or otherwise if no name is near.
func didYouMean(word string, names []string, otherwise string) string {
	found := near(word, names)
	if len(found) == 0 || len(found) > 4 {
		return otherwise
	}
	return "did you mean " + strings.Join(found, " or ") + "?"
}

// commandNames returns the sub-commands and topics of a command.
func commandNames(cmd *cobra.Command) (out []string) {
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			out = append(out, c.Name())
		}
	}
	return out
}

// flagNames returns the flags of a command with their dashes.
func flagNames(cmd *cobra.Command) (out []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			out = append(out, "--"+f.Name)
		}
	})
	return out
}

// unknownFlag returns the flag in cobra's error.
func unknownFlag(err error) (string, bool) {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: ")
	return name, ok
}
