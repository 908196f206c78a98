package cause

import "github.com/etcd-medic/etcd-medic/compare/check"

var cursorLastEmpty = described(Cause{
	ID: BboltCursorLastEmptyPage,
	Match: func(in *Input) *Match {
		return aside(in, check.D09, "rows on that page in the same transaction", every)
	},
})
