package deskpage

import "github.com/stele-id/stele"

// Rules is the rules of a namespace, with forms to try, add and remove them.
type Rules struct {
	Frame
	Key, Title, SpaceURL string
	Role                 stele.Role // of the user who looks
	MayChange            bool
	Version              uint64 // of the namespace
	List                 []RuleView
	Overlaps             []string // sentences about rules that match the same names

	Name, Accept Field       // a name to try
	Tried        *RuleAnswer // what the rules answer for it; nil if none is tried

	Pattern, To, Examples, Silent, Status, Reason, RuleTitle, Before Field // a new rule
	Fold                                                             bool
	Good                                                             string // says that the new rule and its examples hold; "" if it was not tried
}

// RuleView is a rule in the list.
type RuleView struct {
	Number                 int
	Pattern, Title, Reason string
	Fold                   bool
	To                     []string // each with its type and status
	Examples               []string
}

// RuleAnswer is what rules answer for a name.
type RuleAnswer struct {
	Name, Pattern, URL, Text string
	Number                   int // of the rule; 0 if none answers
}
