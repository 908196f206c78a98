package release

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]string{"3.5": "3.5.x", "3.5.x": "3.5.x", "v3.5.12": "3.5.12",
		"3.5.0-rc.1": "3.5.0", "3.10.2": "3.10.2"} {
		if v, err := Parse(text); err != nil || v.String() != want {
			t.Errorf("%s is %s (%v), want %s", text, v, err, want)
		}
	}
	for _, text := range []string{"", "4.0.0", "3", "3.", "3.5.", "3.a", "3.5.1.2", "3.99999999999999999999"} {
		if v, err := Parse(text); err == nil || Of(text).Known() {
			t.Errorf("%q is read as %s", text, v)
		}
	}
}

func TestOrder(t *testing.T) {
	old, young := Release{6, 0}, Release{10, 0}
	if !old.Before(young) || young.Before(old) || old.Before(old) {
		t.Error("3.10 is newer than 3.6")
	}
	if Of("3.10.0").Reach(old) != Yes || Of("3.5.35").Reach(old) != No || (Version{}).Reach(old) != Unknown {
		t.Error("Reach compares other than by number")
	}
}

// TestAnswers: a patch that is not known makes an answer unknown only where the releases of its minor version differ.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		version string
		rule    *Rule
		want    Answer
	}{
		{"3.4.26", LeaseCheckSkipsRoot, No},
		{"3.4.27", LeaseCheckSkipsRoot, Yes},
		{"3.4", LeaseCheckSkipsRoot, Unknown},
		{"3.5.0", LeaseCheckSkipsRoot, No},
		{"3.5.9", LeaseCheckSkipsRoot, No},
		{"3.5.10", LeaseCheckSkipsRoot, Yes},
		{"3.3", LeaseCheckSkipsRoot, No},
		{"3.6", LeaseCheckSkipsRoot, Yes},
		{"", LeaseCheckSkipsRoot, Unknown},
		{"3.6", NestedTxnPermission, Unknown},
		{"3.7", NestedTxnPermission, Yes},
		{"3.5", MembersFromDB, Unknown},
		{"3.4", MembersFromDB, No},
		{"3.4", GrantNeedsPermission, Unknown},
		{"3.5", GrantNeedsPermission, Yes},
		{"3.8", NestedPutsCost, Unknown},
		{"3.3", V2Executed, Yes},
		{"3.6", V2Executed, No},
	} {
		if got := Of(c.version).Has(c.rule); got != c.want {
			t.Errorf("%s follows %s: %s, want %s", c.version, c.rule.ID, got, c.want)
		}
	}
}

func TestRange(t *testing.T) {
	v := Between(Release{5, 3}, Release{5, 12})
	if v.String() != "3.5.3 - 3.5.12" || v.Minor() != 5 || v.Has(LeaseCheckSkipsRoot) != Unknown ||
		v.Has(IndexAtomic) != Yes {
		t.Error(v, v.Minor(), v.Has(LeaseCheckSkipsRoot), v.Has(IndexAtomic))
	}
	if w := Between(Release{5, 12}, Release{5, 3}); w.Known() {
		t.Errorf("a range that ends before it begins is known: %s", w)
	}
	if w := Between(Release{4, 40}, Release{5, 3}); w.Minor() != 0 || w.IsMinor(5) != Unknown || w.IsMinor(6) != No {
		t.Error("a range over two minor versions has none of them")
	}
	if _, ok := v.Patch(); ok {
		t.Error("a range has no patch release")
	}
}

// TestNarrow: what a server did tells which releases it cannot be.
func TestNarrow(t *testing.T) {
	v, ok := AnyOf(4).Narrow(LeaseCheckSkipsRoot, false)
	if !ok || v.String() != "3.4.0 - 3.4.26" || v.Has(NestedTxnPermission) != No {
		t.Error(v, ok)
	}
	v, ok = AnyOf(5).Narrow(NestedTxnPermission, true)
	if !ok || v.Has(LeaseCheckSkipsRoot) != Yes || v.Has(TxnPutChecks) != Unknown {
		t.Error(v, ok)
	}
	if w, ok := AnyOf(6).Narrow(LeaseCheckSkipsRoot, false); ok || w != AnyOf(6) {
		t.Error("no release of 3.6 refuses root, yet", w)
	}
	if w, ok := (Version{}).Narrow(NestedPutsCost, true); !ok || !w.Known() {
		t.Error("an unknown version that follows a rule", w, ok)
	}
}

// TestRuleTexts: every rule says what it is, names a source and has an ID of its own.
func TestRuleTexts(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range Rules() {
		if r.ID == "" || r.What == "" || r.Source == "" || len(r.In) == 0 || ids[r.ID] {
			t.Errorf("rule %q is not complete or stands twice: %+v", r.ID, r)
		}
		ids[r.ID] = true
		for i, s := range r.In {
			if s.Until != (Release{}) && !s.From.Before(s.Until) || i > 0 && s.From.Before(r.In[i-1].Until) {
				t.Errorf("%s: spans out of order: %s", r.ID, r.In)
			}
		}
	}
	if ByID("no-such-rule") != nil || ByID("learners") != Learners {
		t.Error("ByID")
	}
	if got := LeaseCheckSkipsRoot.In.String(); got != "3.4.27 - 3.4.x, 3.5.10 and later" {
		t.Error(got)
	}
}
