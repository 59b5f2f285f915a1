"""Finding machines: what the clouds report about stock, prices, and quotas, side by side."""
