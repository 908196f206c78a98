package cause

// Known is a cause that is known to exist and that no matcher of the catalogue finds. The documents list it, so that
// the absence of a verdict is not read as the absence of the cause.
type Known struct {
	ID, Title string
	// Why says what keeps it from being told offline.
	Why string
}

// Undetected returns the known causes without a matcher, one value each. Whoever writes the matcher deletes the value;
// a test holds that no ID stands in both lists.
func Undetected() []Known {
	return []Known{
		{
			ID: "defrag-drops-backend-options", Title: "the database was opened with other options after a " +
				"defragmentation",
			Why: "up to 3.4.18 and 3.5.2 the reopened database lost the type of its freelist in memory and the " +
				"settings for mapping and syncing. The option " +
				"that decides what is written, that no freelist is stored, is kept on Linux, so the file shows " +
				"nothing; a stored freelist points to another " +
				"system or another program (db-in-use-by-second-tool)",
		},
		{
			ID:    "bbolt-rollback-keeps-allocations",
			Title: "pages of a transaction that was rolled back stayed allocated",
			Why: "bbolt up to 1.3.10 kept them in memory only. At worst a page that a reader still saw was used " +
				"again, which leaves pages that contradict " +
				"each other without a mark of its own: bbolt-page-damage, or backup-races-rename in a backup",
		},
	}
}
