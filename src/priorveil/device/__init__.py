"""What a device needs: the client, its store of answers, its HTTP requests and the wire format."""
