package replay

// SecretUse is one kind of secret in the log: how many entries carry it and the first of them.
type SecretUse struct {
	What        string
	Entries     int
	Term, Index uint64
}

// noteSecrets counts entries with a password in clear or a token. Hashes of passwords do not count.
func (s *Survey) noteSecrets(it *item) {
	a := it.req.Auth
	if a == nil {
		return
	}
	if a.Password != "" {
		what := "password of " + string(it.req.Kind) + " in clear"
		s.secret(it, what)
	}
	if a.SimpleToken != "" {
		s.secret(it, "simple token")
	}
}

func (s *Survey) secret(it *item, what string) {
	for i := range s.Secrets {
		if s.Secrets[i].What == what {
			s.Secrets[i].Entries++
			return
		}
	}
	s.Secrets = append(s.Secrets, SecretUse{What: what, Entries: 1, Term: it.entry.Term, Index: it.entry.Index})
}
