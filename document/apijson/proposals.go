package apijson

import (
	"encoding/json"
	"time"
)

// Proposal is a record, or a change of one, that an owner decides about.
type Proposal struct {
	ID        string          `json:"id" example:"00000000000000000000"`
	Namespace string          `json:"namespace" doc:"Whose owners decide." example:"ark:12345"`
	Record    json.RawMessage `json:"record" schema:"RecordInput" doc:"As it would be."`
	Mint      bool            `json:"mint,omitempty" doc:"The minter makes the name when the proposal is approved; that of the record stands for it."`
	Base      uint64          `json:"base,omitempty" doc:"The version that it changes; without it, the record is new."`
	By        string          `json:"by" example:"ed"`
	At        time.Time       `json:"at"`
	Note      string          `json:"note,omitempty" doc:"Why, in the editor's words."`
	Declined  time.Time       `json:"declined,omitzero" doc:"When an owner declined it."`
	Decliner  string          `json:"decliner,omitempty"`
	Reason    string          `json:"reason,omitempty" doc:"Why it was declined."`
	MayDecide bool            `json:"mayDecide,omitempty" doc:"You may approve or decline it; only where one is shown."`
}

// ProposalPage is a part of a list of proposals.
type ProposalPage struct {
	Items []Proposal `json:"items"`
	Next  string     `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// NewProposal is a proposal as it is sent.
type NewProposal struct {
	Namespace string          `json:"namespace,omitempty" maxLength:"4096" doc:"Where the minter makes a name for a record that has none; without it, the record has its name."`
	Record    json.RawMessage `json:"record" schema:"RecordInput" doc:"As it should be, whole."`
	Base      uint64          `json:"base,omitempty" doc:"The version of the record that it changes; without it, the record is new."`
	Note      string          `json:"note,omitempty" doc:"Why."`
}

// Declining says why a proposal is declined.
type Declining struct {
	Reason string `json:"reason,omitempty" doc:"For its editor, who takes the proposal back without one."`
}
