"""What the device and the curator share: campaigns, the wire format, the client and its store of answers."""
