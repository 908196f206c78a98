package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestHelpOnAFullDisk: a help page that was not written is an error.
func TestHelpOnAFullDisk(t *testing.T) {
	for _, width := range []int{0, 80} {
		for _, args := range [][]string{{"--help"}, {"repair", "apply", "--help"}, {"help", "collect"}} {
			var errs bytes.Buffer
			code := Main(t.Context(), args, &Streams{Out: fullDisk{}, Err: &errs, Width: width,
				Getenv: func(string) string { return "" }})
			if code != ExitError || !strings.Contains(errs.String(), "no space left on device") {
				t.Errorf("%v: exit code %d, %s", args, code, errs.String())
			}
		}
	}
}
