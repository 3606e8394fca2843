package stele

// What the tests of the package need of its inside.
const (
	MaxProblems = maxProblems
	Protocols   = protocols
)

var (
	CheckMediaType = textOf(checkMediaType)
	CheckURLReason = textOf(checkURL)
	HostRuleReason = textOf(hostRuleReason)
	IsLanguage     = isLanguage
	IsProtocol     = isProtocol
	LookAlikes     = lookAlikes
	Plain          = plain
)

// textOf returns a check that answers with the text of its message, "" for none.
func textOf(check func(string) *Message) func(string) string {
	return func(text string) string {
		if m := check(text); m != nil {
			return m.Error()
		}
		return ""
	}
}
