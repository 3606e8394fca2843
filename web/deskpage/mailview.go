package deskpage

import "time"

// MailSettings is the mail address of the user who looks.
type MailSettings struct {
	Address string // that is confirmed; may be empty
	Asked   string // that is to be confirmed; may be empty
	Expires time.Time
	Field   Field
	Digests []Option // how often digests come; none: they are not offered
}

// EndDigests asks whether to end the digests of a user. If it is not valid the link is wrong.
type EndDigests struct {
	Frame
	Action, For string
	Valid, Done bool
}

// ConfirmAddress asks whether to confirm an address. Without an address the link is not valid.
type ConfirmAddress struct {
	Frame
	Action, For, Address string
	Done                 bool
}

// MailQueue is the mail that waits to be sent, and that was given up.
type MailQueue struct {
	Frame
	Mails []QueuedMail
}

// QueuedMail is a mail in the list.
type QueuedMail struct {
	To, Kind, By  string
	Created, Next time.Time
	Tries         int
	GivenUp       bool
	Problem       string
}
