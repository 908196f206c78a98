package cause

// Known is a cause that exists but that no matcher of the catalogue finds. The documents list it, so that the absence
// of a verdict is not read as the absence of the cause.
type Known struct {
	ID    ID
	Title string
	// Why says why it cannot be detected offline.
	Why string
}

// Undetected returns the known causes without a matcher, one value each. Delete the value when you write the matcher; a
// test checks that no ID is in both lists.
func Undetected() []Known {
	return []Known{
		{
			ID: DefragDropsBackendOptions, Title: "the database was opened with other options after a " +
				"defragmentation",
			Why: "up to 3.4.18 and 3.5.2 the reopened database lost the type of its freelist in memory and the " +
				"settings for mapping and syncing. On Linux it keeps the option that affects the file (no freelist " +
				"is stored), so the file shows nothing. A stored freelist points to another system or another " +
				"program (db-in-use-by-second-tool)",
		},
		{
			ID:    BboltRollbackKeepsAllocations,
			Title: "pages of a transaction that was rolled back stayed allocated",
			Why: "bbolt up to 1.3.10 kept them in memory only. At worst a page that a reader still saw was reused. " +
				"This leaves pages that contradict each other without a specific mark: bbolt-page-damage, or " +
				"backup-races-rename in a backup",
		},
	}
}
