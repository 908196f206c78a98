package release_test

import (
	"encoding/json"
	"testing"

	"github.com/etcd-medic/etcd-medic/release"
)

// TestAnswerAsJSON: documents have true, false and null.
func TestAnswerAsJSON(t *testing.T) {
	for text, a := range map[string]release.Answer{"true": release.Yes, "false": release.No, "null": release.Unknown} {
		b, err := json.Marshal(a)
		if err != nil || string(b) != text {
			t.Errorf("%s: %s, %v", a, b, err)
		}
		again := release.Yes
		if err := json.Unmarshal(b, &again); err != nil || again != a {
			t.Errorf("%s: %s, %v", text, again, err)
		}
	}
	if release.AnswerOf(true) != release.Yes || release.AnswerOf(false) != release.No {
		t.Error("a bool is another answer")
	}
}
