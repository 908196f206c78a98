package yamldoc

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestCheck: what keeps the decoder busy or fills its memory is refused in short time, and what people write is not.
func TestCheck(t *testing.T) {
	laugh := "a0: &a0 [x, x]\n"
	for i := 1; i < 60; i++ {
		laugh += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	var keys strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	begin := time.Now()
	for name, text := range map[string]string{"aliases": laugh, "many keys": keys.String(), "equal keys": strings.Repeat("a: 1\n",
		100_000), "two equal keys": "a: 1\nb: {c: 1, c: 2}\n", "many values": strings.Repeat("- ", maxMarks+1),
		"an alias of itself": "&a [*a]", "deep": strings.Repeat("[", 200_000), "deep mappings": strings.Repeat("{a: ", 200_000),
		"control characters": "\x00\x1b"} {
		if err := Check([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, text := range []string{"", "a: 1\nb: [1, 2]\nc: {a: 1}\n", "# note\n- a: 1\n- a: 2\n", "&a x"} {
		if err := Check([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if took := time.Since(begin); took > 2*time.Minute { // about a second on an idle machine
		t.Errorf("took %v", took)
	}
}
