//go:build e2e

package cli

// everySuggestion tells whether TestSuggestionsAreNotRefused does every harm to every set.
const everySuggestion = true
