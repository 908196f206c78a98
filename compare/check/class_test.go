package check_test

import (
	"encoding/json"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestHealthInJSON: true, false, and null where the evidence does not suffice, both ways.
func TestHealthInJSON(t *testing.T) {
	for health, want := range map[check.Health]string{check.Healthy: "true", check.Unhealthy: "false",
		check.HealthUnknown: "null"} {
		b, err := json.Marshal(health)
		if err != nil || string(b) != want {
			t.Errorf("%d: %s, %v", health, b, err)
		}
		back := check.Healthy
		if health == check.Healthy {
			back = check.Unhealthy
		}
		if err := json.Unmarshal([]byte(want), &back); err != nil || back != health {
			t.Errorf("%s: %d, %v", want, back, err)
		}
	}
	var h check.Health
	if err := json.Unmarshal([]byte(`"yes"`), &h); err == nil {
		t.Error("a word is no health")
	}
}

// TestClassesDiffer: each class has one row.
func TestClassesDiffer(t *testing.T) {
	seen := map[check.Class]bool{}
	for _, row := range check.Classes() {
		if seen[row.Class] || row.Meaning == "" || row.Class.Health() != row.Health {
			t.Errorf("%+v", row)
		}
		seen[row.Class] = true
	}
	if check.Class("other").Health() != check.HealthUnknown {
		t.Error("a class that is none says something of health")
	}
}
