package stele

// What the tests of the package need of its inside.
const (
	MaxProblems = maxProblems
	Protocols   = protocols
)

var (
	CheckMediaType = checkMediaType
	CheckURLReason = checkURL
	HostRuleReason = hostRuleReason
	IsLanguage     = isLanguage
	IsProtocol     = isProtocol
	LookAlikes     = lookAlikes
	Plain          = plain
)
