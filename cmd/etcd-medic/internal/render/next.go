package render

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
)

// nextSection writes what to do, at the end of a page.
type nextSection struct{ *page }

func (p nextSection) write(next []compare.Next) {
	if len(next) == 0 {
		return
	}
	p.section("next")
	n, hands := 0, false
	for i := range next {
		if hands = hands || next[i].ByHand; next[i].ByHand {
			continue
		}
		n++
		p.text(fmt.Sprintf("  %d. ", n), next[i].Text)
		p.command("     $ ", next[i].Command)
	}
	if hands {
		p.byHand(next)
	}
}

// byHand writes the way without this program. It is separate, since its steps must be done completely or not at all.
func (p nextSection) byHand(next []compare.Next) {
	p.section("by hand instead, one member at a time")
	for i := 0; i < len(next); {
		if !next[i].ByHand {
			i++
			continue
		}
		text, to := next[i].Text, i+1
		for m := next[i].Member; m != "" && to < len(next) && next[to].Member == m; to++ {
			text += "; " + strings.TrimPrefix(next[to].Text, m+": ")
		}
		p.text("  ", text)
		for ; i < to; i++ {
			p.command("    $ ", next[i].Command)
		}
	}
}
