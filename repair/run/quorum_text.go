package run

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// waits says what is missing and which members would help.
func (w *ruling) waits() string {
	var who []string
	for _, v := range w.missing {
		who = append(who, fmt.Sprintf("%s (%s)", v.name, w.reason(&v)))
	}
	switch {
	case len(who) == 0:
		return w.text
	case w.need == 0 || w.need >= len(who):
		return w.text + "; it waits for " + strings.Join(who, " and ")
	}
	return fmt.Sprintf("%s; it waits for %d of %s", w.text, w.need, strings.Join(who, ", "))
}

// reason says why a voter is missing, and what to do about one that the plan does not know.
func (w *ruling) reason(v *voter) string {
	switch {
	case v.unwanted == "":
		return v.why
	case w.leaderless:
		return v.why + "; once there is a leader, " + v.unwanted
	}
	return v.why + "; " + v.unwanted
}

// bringBack are the commands that start the voters that are missing.
func (w *ruling) bringBack(p *plan.Plan) []string {
	var out []string
	for _, v := range w.missing {
		if v.runs || v.m == nil {
			out = append(out, v.name+": "+w.reason(&v))
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s; start it on its own data dir, one of:", v.name, v.why))
		for _, c := range plan.StepStart.ByHand(p, v.m) {
			if c.With != "etcdctl" {
				out = append(out, "  "+c.Prefix()+c.Run)
			}
		}
	}
	return out
}
