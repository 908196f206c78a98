package cause

var cursorLastEmpty = described(Cause{
	ID: "bbolt-cursor-last-empty-page",
	Match: func(in *Input) *Match {
		return aside(in, "D09", "rows on that page in the same transaction", every)
	},
})
